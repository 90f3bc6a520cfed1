import { createHash } from 'node:crypto'
import { readdir, realpath, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { ServeError } from '@tutti/errors'
import { hashFile } from '../tree-files.ts'
import { isInside } from '../version-files.ts'
import type { FetchBounds } from './fetch-options.ts'
import { TreePlan } from './tree-plan.ts'

/** The content of a tree, as a digest and in numbers. */
export interface TreeDigest {
  /** `sha256:` and 64 hex digits. */
  readonly digest: string
  readonly files: number
  readonly bytes: number
}

/** A volume's own; most processes cannot even read it. */
const NOT_OF_THE_MODEL = 'lost+found'

/**
 * Digests a folder: computes the SHA-256 of the output of `sha256sum` for all its files, sorted by name as bytes. In a shell:
 * `find -L . -type f -printf '%P\n' | LC_ALL=C sort | xargs -d '\n' sha256sum | sha256sum`. Dot files count, empty folders do
 * not, links are followed.
 *
 * @throws ServeError ARTIFACT_NOT_FOUND if there is no such folder, ARTIFACT_INVALID if a link leads out of it or a name has
 * characters that would need quoting, ARTIFACT_TOO_LARGE, REPOSITORY_UNREADABLE.
 */
export async function digestTree(
  directory: string,
  bounds: Pick<FetchBounds, 'maxBytes' | 'maxFiles'>,
): Promise<TreeDigest> {
  const plan = new TreePlan(bounds)
  const paths = new Map<string, string>()
  try {
    const root = await realpath(directory)
    await listFiles({ root, plan, paths }, root, '')
    const hash = createHash('sha256')
    for (const name of [...paths.keys()].toSorted(byBytes)) {
      hash.update(`${await hashFile(paths.get(name) ?? '')}  ${name}\n`)
    }
    return { digest: `sha256:${hash.digest('hex')}`, files: plan.files, bytes: plan.bytes }
  } catch (error) {
    if (error instanceof ServeError) throw error
    const isAbsent = error instanceof Error && 'code' in error && error.code === 'ENOENT'
    const reason = isAbsent ? 'ARTIFACT_NOT_FOUND' : 'REPOSITORY_UNREADABLE'
    const text = `'${directory}' cannot be read: ${ServeError.from(error).message}`
    throw new ServeError(reason, text, { cause: error })
  }
}

/** @param o.paths - gets the path of each file by its name in the tree. */
async function listFiles(
  o: { readonly root: string; readonly plan: TreePlan; readonly paths: Map<string, string> },
  directory: string,
  prefix: string,
): Promise<void> {
  const { root, plan, paths } = o
  for (const entry of await readdir(directory)) {
    const name = `${prefix}${entry}`
    if (name === NOT_OF_THE_MODEL) continue
    const path = await realpath(join(directory, entry))
    if (!isInside(root, path)) {
      throw new ServeError('ARTIFACT_INVALID', `'${name}' is a link that leads out of the folder`)
    }
    const found = await stat(path)
    if (found.isDirectory()) {
      plan.add('directory', name)
      await listFiles(o, path, `${name}/`)
    } else if (found.isFile()) {
      paths.set(plan.add('file', name, found.size), path)
    } else throw new ServeError('ARTIFACT_INVALID', `'${name}' is neither a file nor a folder`)
  }
}

function byBytes(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b))
}
