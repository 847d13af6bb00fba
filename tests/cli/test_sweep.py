def test_a_sweep_that_cannot_run_says_so(tmp_path, error_message):
    (tmp_path / "file").write_text("")
    assert "cannot be used" in error_message("sweep", "tiny", "--store", tmp_path / "file")
    assert "`--shard` must be like 2/8, got '3'" in error_message(
        "sweep", "tiny", "--store", tmp_path, "--shard", "3"
    )
    missing = ("--scheduler-file", tmp_path / "none.json")
    assert "none.json' is not there" in error_message("sweep", "tiny", "--store", tmp_path, *missing)
