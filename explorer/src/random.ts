/** Random numbers from a seed: the same seed gives the same numbers in every browser. */

/** Draws standard normal and uniform numbers. */
export interface Random {
  uniform(): number;
  normal(): number;
}

/** A generator for a seed and a purpose, so that different uses of one seed are independent. */
export function random(seed: number, purpose: string): Random {
  const uniform = sfc32(seed, hash(purpose));
  let spare: number | null = null;
  function normal(): number {
    if (spare !== null) {
      const value = spare;
      spare = null;
      return value;
    }
    const radius = Math.sqrt(-2 * Math.log(1 - uniform())); // Box and Muller
    const angle = 2 * Math.PI * uniform();
    spare = radius * Math.sin(angle);
    return radius * Math.cos(angle);
  }
  return { uniform, normal };
}

/** The small fast counting generator: 128 bits of state, numbers in [0, 1) with 53 bits. */
function sfc32(seed: number, stream: number): () => number {
  let [a, b, c, counter] = [seed | 0, Math.floor(seed / 2 ** 32) | 0, stream | 0, 1];
  function next(): number {
    const sum = (a + b + counter) | 0;
    counter = (counter + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = ((c << 21) | (c >>> 11)) + sum | 0;
    return sum >>> 0;
  }
  for (let i = 0; i < 16; i++) next();
  return () => ((next() >>> 5) * 2 ** 26 + (next() >>> 6)) / 2 ** 53;
}

/** A hash of a text. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (const letter of text) value = Math.imul(value ^ letter.codePointAt(0)!, 0x01000193);
  return value;
}
