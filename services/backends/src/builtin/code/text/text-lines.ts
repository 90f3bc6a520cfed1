import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { ServeError } from '@tutti/errors'
import type { CodePlace } from '../code-step.ts'

/** Most bytes of a file that options name. The largest tokenizer.json that is known has 35 MB. */
const MAX_FILE_BYTES = 64 * 1024 * 1024

/** Reads a file of a built-in step. @throws ServeError MODEL_LOAD_FAILED if it is absent or too large. */
export async function readPlacedFile({ directories }: CodePlace, name: string): Promise<Buffer> {
  const content = await readFirst(directories, name)
  if (content.byteLength <= MAX_FILE_BYTES) return content
  const text = `file ${name}: ${content.byteLength} bytes, want at most ${MAX_FILE_BYTES}`
  throw new ServeError('MODEL_LOAD_FAILED', text)
}

async function readFirst(directories: readonly string[], name: string): Promise<Buffer> {
  for (const [i, directory] of directories.entries()) {
    try {
      return await readFile(join(directory, name))
    } catch (error) {
      const isAbsent = error instanceof Error && 'code' in error && error.code === 'ENOENT'
      if (isAbsent && i + 1 < directories.length) continue
      const why = isAbsent ? 'it is not beside the model' : ServeError.from(error).message
      throw new ServeError('MODEL_LOAD_FAILED', `file ${name}: ${why}`, { cause: error })
    }
  }
  throw new ServeError('MODEL_LOAD_FAILED', `file ${name}: no model is named that has it`)
}

/**
 * The texts of a list in the options, or of the lines of a file in UTF-8. A newline at the end ends the last line.
 *
 * @throws ServeError MODEL_LOAD_FAILED
 */
export async function readTexts(
  place: CodePlace,
  {
    list,
    file,
  }: { readonly list?: readonly string[] | undefined; readonly file?: string | undefined },
): Promise<readonly Uint8Array[]> {
  if (list !== undefined) return list.map((text) => Buffer.from(text))
  const content = await readPlacedFile(place, file ?? '')
  try {
    new TextDecoder('utf-8', { fatal: true }).decode(content)
  } catch (error) {
    throw new ServeError('MODEL_LOAD_FAILED', `file ${file}: no UTF-8`, { cause: error })
  }
  const lines = content
    .toString('utf8')
    .replace(/\r?\n$/, '')
    .split(/\r?\n/)
  return lines.map((line) => Buffer.from(line))
}
