import { randomBytes } from 'node:crypto'
import { mkdir, readdir, readlink, rm, stat, symlink } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'

/** Folder of the Python environments. `<key>` is a link to a folder `<key>-<random>`, and is made when the folder is complete. */
export const ENVIRONMENT_CACHE = join(homedir(), '.cache', 'tutti', 'environments')

/** Time after which a folder that is not done has lost its maker. */
const ABANDONED_MS = 24 * 3600 * 1000

/**
 * Finds a folder of the cache, or makes it. Several processes may do this at once: each makes its own folder, and all use the one
 * that is complete first. A later process removes what a killed process has left.
 *
 * @param key - of hexadecimal digits, letters, dots and dashes.
 * @returns the folder itself, not the link.
 */
export async function makeCached(
  cache: string,
  key: string,
  make: (directory: string) => Promise<void>,
): Promise<string> {
  const link = join(cache, key)
  const known = await readlink(link).catch(() => undefined)
  if (known !== undefined) return join(cache, known)
  await mkdir(cache, { recursive: true })
  await removeAbandoned(cache, key)
  const name = `${key}-${randomBytes(6).toString('hex')}`
  const directory = join(cache, name)
  await mkdir(directory)
  try {
    await make(directory)
    const first = await linkOnce(name, link)
    if (first !== name) await remove(directory)
    return join(cache, first)
  } catch (error) {
    await remove(directory)
    throw error
  }
}

/** Removes a folder; a process that was killed while it made the folder may write a last file there. */
const remove = (path: string) => rm(path, { recursive: true, force: true, maxRetries: 3 })

/** Links to a folder, unless there is a link. @returns where it leads. */
async function linkOnce(name: string, link: string): Promise<string> {
  try {
    await symlink(name, link)
    return name
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return readlink(link)
    throw error
  }
}

/** Removes folders of a key to which no link leads. */
async function removeAbandoned(cache: string, key: string): Promise<void> {
  const prefix = `${key}-`
  for (const name of await readdir(cache)) {
    if (!name.startsWith(prefix) || !/^[0-9a-f]{12}$/.test(name.slice(prefix.length))) continue
    const path = join(cache, name)
    // Another process may remove it too.
    const found = await stat(path).catch(() => undefined)
    if (found !== undefined && Date.now() - found.mtimeMs > ABANDONED_MS) {
      await remove(path)
    }
  }
}
