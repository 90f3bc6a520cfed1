import { writeFile } from 'node:fs/promises'
import { flagRefusal } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'

/** Writes the picture that `--svg` asks for. @throws ServeError FLAG_INVALID */
export async function writeSvg(file: string, svg: string): Promise<void> {
  try {
    await writeFile(file, svg)
  } catch (cause) {
    const { message } = ServeError.from(cause)
    throw flagRefusal('--svg', `${file} cannot be written: ${message}`, cause)
  }
}
