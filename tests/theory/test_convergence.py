from lintra.theory import convergence


def test_layers_needed_are_counted_without_loss_of_digits():
    assert convergence.num_layers(1.0 + 1e-3, 2) == 1
    assert convergence.num_layers(100.0, 1000) - convergence.num_layers(100.0, 500) == 1
