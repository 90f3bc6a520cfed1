import { type FileHandle, open } from 'node:fs/promises'
import { ServeError } from '@tutti/errors'

/** Runs what writes, so that a full or read-only disk is told from a bad line. @throws ServeError ARTIFACT_NOT_STORED */
export async function onDisk<T>(path: string, write: () => Promise<T>): Promise<T> {
  try {
    return await write()
  } catch (error) {
    if (error instanceof ServeError) throw error
    const { message } = ServeError.from(error)
    throw new ServeError('ARTIFACT_NOT_STORED', `'${path}' cannot be written: ${message}`, {
      cause: error,
    })
  }
}

/** Makes a directory's own entries safe from a power cut. */
export async function syncDirectory(path: string): Promise<void> {
  let directory: FileHandle | undefined
  try {
    directory = await open(path, 'r')
    await directory.sync()
  } catch (error) {
    // Some file systems of volumes know no such thing; then there is nothing to do.
    if (!isNoSync(error)) throw error
  } finally {
    await directory?.close()
  }
}

function isNoSync(error: unknown): boolean {
  return (
    error instanceof Error && 'code' in error && ['EINVAL', 'ENOTSUP'].includes(String(error.code))
  )
}
