/** One entry of a test's archive, as its header says it: nothing is checked. */
export interface TarEntry {
  readonly name: string
  /** `0` file, `1` hard link, `2` symbolic link, `3` device, `5` folder, `6` pipe, `x` attributes. */
  readonly type?: string
  readonly data?: string | Uint8Array
  readonly link?: string
  readonly mode?: number
  /** Size that the header claims; the length of `data` if absent. */
  readonly size?: number
}

const BLOCK = 512

/** Builds a tar archive of any entries, also of hostile ones that no tar program would write. */
export function tarArchive(entries: readonly TarEntry[]): Buffer {
  const blocks = entries.flatMap((entry) => {
    const data = Buffer.from(entry.data ?? '')
    const padding = Buffer.alloc((BLOCK - (data.byteLength % BLOCK)) % BLOCK)
    return [header(entry, data.byteLength), data, padding]
  })
  return Buffer.concat([...blocks, Buffer.alloc(2 * BLOCK)])
}

function header(entry: TarEntry, length: number): Buffer {
  const { name, type = '0', link = '', mode = 0o644, size = length } = entry
  const block = Buffer.alloc(BLOCK)
  block.write(name, 0, 100, 'utf8')
  block.write(`${octal(mode, 7)}\0${octal(0, 7)}\0${octal(0, 7)}\0`, 100, 'latin1')
  block.write(`${octal(size, 11)}\0${octal(0, 11)}\0`, 124, 'latin1')
  block.write('        ', 148, 'latin1')
  block.write(type, 156, 1, 'latin1')
  block.write(link, 157, 100, 'utf8')
  block.write('ustar\u000000', 257, 'latin1')
  const sum = block.reduce((total, byte) => total + byte, 0)
  block.write(`${octal(sum, 6)}\0 `, 148, 'latin1')
  return block
}

function octal(value: number, digits: number): string {
  return value.toString(8).padStart(digits, '0')
}
