import { badRequest } from './http-fault.ts'
import { MAX_HEAD_BYTES, splitField } from './request-head.ts'

const LINE_FEED = 0x0a
/** A size, and extensions `;NAME`, `;NAME=TOKEN` or `;NAME="TEXT"`, without blanks between them. */
const SIZE_LINE =
  /^([\dA-Fa-f]{1,12})(?:;[!#$%&'*+.^_`|~\w-]+(?:=(?:[!#$%&'*+.^_`|~\w-]+|"(?:[\t !#-[\]-~\x80-\xff]|\\[\t -~\x80-\xff])*"))?)*$/

/** Reads a body in chunks. Extensions and trailers are checked, counted and dropped. @see RFC 9112, 7.1 */
export class ChunkedBody {
  #part: 'size' | 'data' | 'data end' | 'trailers' = 'size'
  #left = 0
  /** The line so far. */
  #line = ''
  /** Bytes of extensions and of trailers. */
  #spareBytes = 0
  /** True once the end of the body has come. */
  isWhole = false

  /**
   * Takes one line, or one piece of a chunk's data; less of it if `bytes` end before.
   *
   * @param data - gets the piece: a view.
   * @returns where the bytes begin that were not taken.
   * @throws HttpFault 400
   */
  take(bytes: Buffer, at: number, data: (piece: Buffer) => void): number {
    if (this.#part !== 'data') return this.#takeLine(bytes, at)
    const end = Math.min(bytes.byteLength, at + this.#left)
    this.#left -= end - at
    if (this.#left === 0) this.#part = 'data end'
    data(bytes.subarray(at, end))
    return end
  }

  #takeLine(bytes: Buffer, at: number): number {
    const found = bytes.indexOf(LINE_FEED, at)
    const end = found < 0 ? bytes.byteLength : found + 1
    this.#line += bytes.toString('latin1', at, end)
    if (this.#line.length + this.#spareBytes > MAX_HEAD_BYTES) {
      throw badRequest('the extensions and trailers of its chunks are too long')
    }
    if (found < 0) return end
    if (!this.#line.endsWith('\r\n')) throw badRequest('a line of a chunk does not end with CR LF')
    const line = this.#line.slice(0, -2)
    this.#line = ''
    this.#endLine(line)
    return end
  }

  #endLine(line: string): void {
    if (this.#part === 'data end') {
      if (line !== '') throw badRequest('a chunk is longer than its size')
      this.#part = 'size'
    } else if (this.#part === 'trailers') {
      if (line === '') this.isWhole = true
      else checkTrailer(line)
      this.#spareBytes += line.length
    } else {
      const [, size] = SIZE_LINE.exec(line) ?? []
      if (size === undefined) throw badRequest('a chunk does not begin with its size')
      this.#left = Number.parseInt(size, 16)
      this.#part = this.#left === 0 ? 'trailers' : 'data'
      this.#spareBytes += line.length - size.length
    }
  }
}

/** Checks a trailer field. It may tell neither how long the body is nor whether the connection stays. @see RFC 9110, 6.5.1 */
function checkTrailer(line: string): void {
  const { name } = splitField(line)
  if (/^(?:connection|content-length|transfer-encoding)$/i.test(name)) {
    throw badRequest(`its chunks end with the header ${name}`)
  }
}
