import { resolve } from 'node:path'
import { ServeError } from '@tutti/errors'
import type { ModelOutput } from '@tutti/model-config'
import { readBoundedText } from './bounded-read.ts'
import type { RepositoryModel } from './repository-model.ts'
import { isInside } from './version-files.ts'

const MAX_LABEL_BYTES = 64 * 1024 * 1024

/**
 * Reads the labels of all outputs that have a label file. A file has one label per line; the zero-based line is the class index.
 *
 * @param outputs - `label_filename` is relative to the model directory, '' for none.
 * @returns output name -> label lines.
 * @throws ServeError UNSUPPORTED if a file lies outside of the model directory, REPOSITORY_UNREADABLE if it cannot be
 * read or is over 64 MiB.
 */
export async function readLabels(
  model: RepositoryModel,
  outputs: readonly Pick<ModelOutput, 'name' | 'label_filename'>[],
): Promise<Readonly<Record<string, readonly string[]>>> {
  const labels: Record<string, readonly string[]> = {}
  for (const { name, label_filename: filename } of outputs) {
    if (filename !== '') labels[name] = await readLabelFile(model, name, filename)
  }
  return labels
}

async function readLabelFile(
  model: RepositoryModel,
  output: string,
  filename: string,
): Promise<readonly string[]> {
  const path = resolve(model.directory, filename)
  const details = { model: model.name, field: 'output.label_filename' }
  if (!isInside(model.directory, path)) {
    const text = `label file path '${filename}' for output '${output}' in model '${model.name}' is outside model directory`
    throw new ServeError('UNSUPPORTED', text, { details })
  }
  try {
    const lines = (await readBoundedText(path, MAX_LABEL_BYTES)).split('\n')
    if (lines.at(-1) === '') lines.pop()
    return lines.map((line) => (line.endsWith('\r') ? line.slice(0, -1) : line))
  } catch (error) {
    if (error instanceof ServeError) throw error.withDetails(details)
    const isAbsent = error instanceof Error && 'code' in error && error.code === 'ENOENT'
    const text = isAbsent
      ? `failed to open text file for read ${path}: No such file or directory`
      : `label file '${filename}' for output '${output}' in model '${model.name}' cannot be read`
    throw new ServeError('REPOSITORY_UNREADABLE', text, { cause: error, details })
  }
}
