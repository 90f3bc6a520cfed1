import { createHash, type Hash } from 'node:crypto'
import { createReadStream } from 'node:fs'

/** Adds a text with its length before it, so that no two lists of texts give the same bytes. */
export function addText(hash: Hash, text: string): void {
  const bytes = Buffer.from(text, 'utf8')
  hash.update(`${bytes.byteLength}:`).update(bytes)
}

/** SHA-256 of a file's contents, in hex digits. The file is streamed, never held whole. */
export async function hashFile(path: string): Promise<string> {
  const content = createHash('sha256')
  for await (const chunk of createReadStream(path)) content.update(chunk)
  return content.digest('hex')
}
