import { resolve } from 'node:path'
import { ServeError } from '@tutti/errors'
import { readBounded } from './bounded-read.ts'
import type { RepositoryModel } from './repository-model.ts'
import { isInside } from './version-files.ts'

const MAX_LABEL_BYTES = 64 * 1024 * 1024

/**
 * The labels of an output: one per line, the zero-based line is the class index.
 *
 * @param filename - the output's `label_filename`, relative to the model directory.
 * @param output - its name, for messages.
 * @throws ServeError UNSUPPORTED if the file lies outside of the model directory, REPOSITORY_UNREADABLE if it cannot be
 * read or is over 64 MiB.
 */
export async function readLabels(
  model: RepositoryModel,
  filename: string,
  output = '',
): Promise<readonly string[]> {
  const path = resolve(model.directory, filename)
  const details = { model: model.name, field: 'output.label_filename' }
  if (!isInside(model.directory, path)) {
    throw new ServeError(
      'UNSUPPORTED',
      `label file path '${filename}' for output '${output}' in model '${model.name}' is outside model directory`,
      { details },
    )
  }
  try {
    const lines = (await readBounded(path, MAX_LABEL_BYTES)).split('\n')
    if (lines.at(-1) === '') lines.pop()
    return lines.map((line) => (line.endsWith('\r') ? line.slice(0, -1) : line))
  } catch (error) {
    if (error instanceof ServeError) throw error.withDetails(details)
    throw new ServeError(
      'REPOSITORY_UNREADABLE',
      `label file '${filename}' for output '${output}' in model '${model.name}' cannot be read`,
      { cause: error, details },
    )
  }
}
