import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { promisify } from 'node:util'
import { tarArchive } from '@tutti/repository/testing'
import { TUTTI } from '../serving.ts'

/** As `tutti fetch` tells it. */
export async function treeDigest(folder: string): Promise<string> {
  const args = ['fetch', '--verify', folder, '--print-digest', '--log-info=false']
  const { stdout } = await promisify(execFile)(process.execPath, [TUTTI, ...args])
  return stdout.trim()
}

/** A tar archive of a folder's contents. */
export async function archiveOf(folder: string): Promise<Buffer> {
  return tarArchive((await filesOf(folder)).map(([name, data]) => ({ name, data })))
}

/** The files of a folder, by their paths in it. */
export async function filesOf(folder: string): Promise<readonly (readonly [string, Buffer])[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  const paths = entries
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name))
  return await Promise.all(
    paths.map(async (path) => [relative(folder, path), await readFile(path)] as const),
  )
}

/** As `storage.digest` of an archive. */
export function sha256(bytes: Buffer): string {
  return `sha256:${createHash('sha256').update(bytes).digest('hex')}`
}
