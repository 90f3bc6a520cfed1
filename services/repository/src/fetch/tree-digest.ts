import { createHash } from 'node:crypto'
import { readdir, realpath, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { ServeError } from '@tutti/errors'
import { hashFile } from '../content-hash.ts'
import { isInside } from '../version-files.ts'
import type { FetchBounds } from './fetch-options.ts'
import { TreePlan } from './tree-plan.ts'

/** What a tree holds. */
export interface TreeDigest {
  /** `sha256:` and 64 hex digits. */
  readonly digest: string
  readonly files: number
  readonly bytes: number
}

interface Found {
  readonly name: string
  readonly path: string
}

/** A volume's own; it can mostly not even be read. */
const NOT_OF_THE_MODEL = 'lost+found'

/**
 * The digest of a folder: SHA-256 of what `sha256sum` prints of all its files, sorted by name as bytes. In a shell:
 * `find -L . -type f -printf '%P\n' | LC_ALL=C sort | xargs -d '\n' sha256sum | sha256sum`. Dot files count, empty folders do not, links
 * are followed.
 *
 * @throws ServeError ARTIFACT_NOT_FOUND if there is no such folder, ARTIFACT_INVALID if a link leads out of it or a name has
 * characters that would need quoting, ARTIFACT_TOO_LARGE, REPOSITORY_UNREADABLE.
 */
export async function digestTree(
  directory: string,
  bounds: Pick<FetchBounds, 'maxBytes' | 'maxFiles'>,
): Promise<TreeDigest> {
  const plan = new TreePlan(bounds)
  try {
    const root = await realpath(directory)
    const files = await listFiles({ root, plan }, root, '')
    const hash = createHash('sha256')
    for (const { name, path } of files.toSorted(byBytes)) {
      hash.update(`${await hashFile(path)}  ${name}\n`)
    }
    return { digest: `sha256:${hash.digest('hex')}`, files: plan.files, bytes: plan.bytes }
  } catch (error) {
    if (error instanceof ServeError) throw error
    const { message } = ServeError.from(error)
    const isAbsent = error instanceof Error && 'code' in error && error.code === 'ENOENT'
    const reason = isAbsent ? 'ARTIFACT_NOT_FOUND' : 'REPOSITORY_UNREADABLE'
    throw new ServeError(reason, `'${directory}' cannot be read: ${message}`, { cause: error })
  }
}

async function listFiles(
  o: { readonly root: string; readonly plan: TreePlan },
  directory: string,
  prefix: string,
): Promise<Found[]> {
  const files: Found[] = []
  for (const entry of await readdir(directory)) {
    if (prefix === '' && entry === NOT_OF_THE_MODEL) continue
    const name = `${prefix}${entry}`
    const path = await realpath(join(directory, entry))
    if (!isInside(o.root, path)) {
      throw new ServeError('ARTIFACT_INVALID', `'${name}' is a link that leads out of the folder`)
    }
    const found = await stat(path)
    if (found.isDirectory()) {
      o.plan.add('directory', name)
      files.push(...(await listFiles(o, path, `${name}/`)))
    } else if (found.isFile()) {
      o.plan.add('file', name, found.size)
      files.push({ name, path })
    } else throw new ServeError('ARTIFACT_INVALID', `'${name}' is neither a file nor a folder`)
  }
  return files
}

function byBytes(a: Found, b: Found): number {
  return Buffer.compare(Buffer.from(a.name), Buffer.from(b.name))
}
