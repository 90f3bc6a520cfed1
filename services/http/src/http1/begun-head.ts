import { badRequest } from './http-fault.ts'

/** Characters of the method, the target and the version of a request line, each with what ends it. */
const LINE_PARTS = [
  { characters: /[!#$%&'*+.^_`|~\w-]*/y, end: ' ' },
  { characters: /[\x21-\x7e]*/y, end: ' ' },
  { characters: /[A-Z0-9/.]*/y, end: '\r' },
] as const
const BARE_LINE_END = /(?:^|[^\r])\n|\r[^\n]/

/** Checks a head whose end has not come yet, so that a client of another protocol is told at once. Looks at each byte once. */
export class BegunHead {
  #checkedBytes = 0
  /** The part of the request line that the next byte belongs to. */
  #part = 0
  #endsInReturn = false

  /** Checks the bytes that came since the last check. @param begin - where the head begins. @throws HttpFault 400 */
  check(bytes: Buffer, begin: number): void {
    const text = bytes.toString('latin1', begin + this.#checkedBytes)
    if (text === '') return
    this.#checkedBytes += text.length
    this.#checkLine(text)
    if (BARE_LINE_END.test(this.#endsInReturn ? `\r${text}` : text)) {
      throw badRequest('a line does not end with CR LF')
    }
    this.#endsInReturn = text.endsWith('\r')
  }

  #checkLine(text: string): void {
    for (let at = 0; ; at += 1) {
      const part = LINE_PARTS[this.#part]
      if (part === undefined) return
      const { characters, end } = part
      characters.lastIndex = at
      at += characters.exec(text)?.[0].length ?? 0
      if (at === text.length) return
      if (text[at] !== end) throw badRequest('the request line is not METHOD TARGET HTTP/1.1')
      this.#part += 1
    }
  }
}
