import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

/** A temporary directory with files in it. */
export interface ModelTree {
  readonly directory: string
  readonly remove: () => Promise<void>
}

/**
 * Writes a repository for a test.
 *
 * @param files - relative path -> contents; a path that ends in `/` is an empty directory.
 */
export async function writeModelTree(
  files: Readonly<Record<string, string | Uint8Array>>,
): Promise<ModelTree> {
  const directory = await mkdtemp(join(tmpdir(), 'tutti-repository-'))
  for (const [name, contents] of Object.entries(files)) {
    const path = join(directory, name)
    if (name.endsWith('/')) await mkdir(path, { recursive: true })
    else {
      await mkdir(dirname(path), { recursive: true })
      await writeFile(path, contents)
    }
  }
  return { directory, remove: () => rm(directory, { recursive: true, force: true }) }
}
