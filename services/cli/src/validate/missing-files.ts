import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { filesOfBuiltins, type Graph } from '@tutti/graph'

/** A file that a built-in step reads and that its Model does not have. */
export interface MissingFile {
  /** Index of the step. */
  readonly step: number
  readonly message: string
}

/**
 * Finds files that built-in steps of a graph read and that are not beside their Models. A Model whose folders are not known has any file.
 *
 * @param foldersOf - lists the folders of a model: those of its versions, and its own.
 */
export async function findMissingFiles(
  graph: Graph,
  foldersOf: (model: string) => readonly string[] | undefined,
): Promise<readonly MissingFile[]> {
  const missing: MissingFile[] = []
  for (const { step, model, file } of filesOfBuiltins(graph)) {
    const folders = foldersOf(model)
    if (folders === undefined || (await isInOne(folders, file))) continue
    const message = `got '${file}', want a file in the folder of '${model}', or in that of its version`
    missing.push({ step, message })
  }
  return missing
}

async function isInOne(folders: readonly string[], file: string): Promise<boolean> {
  const found = await Promise.all(
    folders.map((folder) =>
      stat(join(folder, file)).then(
        (entry) => entry.isFile(),
        () => false,
      ),
    ),
  )
  return found.includes(true)
}
