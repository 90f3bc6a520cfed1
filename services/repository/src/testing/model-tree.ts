import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

export type ModelTree = Awaited<ReturnType<typeof writeModelTree>>

/**
 * Writes a repository for a test into a temporary directory.
 *
 * @param files - relative path -> contents; a path that ends in `/` is an empty directory.
 */
export async function writeModelTree(files: Readonly<Record<string, string | Uint8Array>>) {
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
