import { constants, open, realpath } from 'node:fs/promises'
import { join, relative, sep } from 'node:path'
import { ServeError } from '@tutti/errors'
import type { CodePlace } from '../code-step.ts'

/** Most bytes of a file that options name. The largest tokenizer.json that is known has 35 MB. */
const MAX_FILE_BYTES = 64 * 1024 * 1024

/**
 * Reads a file of a built-in step, of the first folder that has it. Links count as long as they lead to a file of these folders: others are not
 * part of the model, whose revision tells nothing of them.
 *
 * @throws ServeError MODEL_LOAD_FAILED if it is absent, too large, elsewhere, or no regular file.
 */
export async function readPlacedFile({ directories }: CodePlace, name: string): Promise<Buffer> {
  if (directories.length === 0) throw unreadable(name, 'no model is named that has it')
  const folders = await Promise.all(directories.map((directory) => realPath(directory, name)))
  for (const directory of directories) {
    const path = await realPath(join(directory, name), name)
    if (path === undefined) continue
    if (!folders.some((folder) => folder !== undefined && isInside(folder, path))) {
      throw unreadable(name, 'it is a link to a file outside of the folder of its model')
    }
    return await readRegular(path, name)
  }
  throw unreadable(name, 'it is not beside the model')
}

/** @returns undefined if there is no such file. */
async function realPath(path: string, name: string): Promise<string | undefined> {
  try {
    return await realpath(path)
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw unreadable(name, ServeError.from(error).message, error)
  }
}

function isInside(directory: string, path: string): boolean {
  const way = relative(directory, path)
  return way !== '' && way !== '..' && !way.startsWith(`..${sep}`)
}

/** Reads a file whose size is known to fit. A pipe would have no end, and opened otherwise would wait for a writer. */
async function readRegular(path: string, name: string): Promise<Buffer> {
  const { O_RDONLY, O_NONBLOCK, O_NOFOLLOW } = constants
  const file = await open(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW).catch((error: unknown) => {
    throw unreadable(name, ServeError.from(error).message, error)
  })
  try {
    const found = await file.stat()
    if (!found.isFile()) throw unreadable(name, 'it is no regular file')
    if (found.size > MAX_FILE_BYTES) {
      throw unreadable(name, `${found.size} bytes, want at most ${MAX_FILE_BYTES}`)
    }
    return await file.readFile()
  } finally {
    await file.close()
  }
}

function unreadable(name: string, why: string, cause?: unknown): ServeError {
  return new ServeError('MODEL_LOAD_FAILED', `file ${name}: ${why}`, { cause })
}

/**
 * The texts of a list in the options, or of the lines of a file in UTF-8, with or without a byte order mark. A newline at the end ends the
 * last line.
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
    const text = new TextDecoder('utf-8', { fatal: true }).decode(content)
    const lines = text.replace(/\r?\n$/, '').split(/\r?\n/)
    return lines.map((line) => Buffer.from(line))
  } catch (error) {
    const text = `file ${file}: got bytes that are no UTF-8, want UTF-8`
    throw new ServeError('MODEL_LOAD_FAILED', text, { cause: error })
  }
}
