import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { ROOT } from '../serving.ts'

const run = promisify(execFile)

/** The commit that processes of today must work beside, as pods of two images do while one replaces the other. */
export const EARLIER_COMMIT = '47413285'

/** Why an earlier build cannot be had here, or false: a shallow clone lacks its commit. */
export async function withoutEarlierCommit(): Promise<string | false> {
  try {
    await run('git', ['cat-file', '-e', `${EARLIER_COMMIT}^{commit}`], { cwd: ROOT })
    return false
  } catch {
    return `the history of this checkout lacks commit ${EARLIER_COMMIT}`
  }
}

/** Builds `tutti` of the earlier commit, once, in the cache folder. @returns its program, for `node`. */
export async function buildEarlier(): Promise<string> {
  const cache = join(process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'tutti')
  const folder = join(cache, `checkout-${EARLIER_COMMIT}`)
  if (!existsSync(folder)) {
    mkdirSync(cache, { recursive: true })
    const building = mkdtempSync(`${folder}-build-`)
    try {
      const archive = join(building, 'archive.tar')
      await run('git', ['archive', `--output=${archive}`, EARLIER_COMMIT], { cwd: ROOT })
      await run('tar', ['-xf', archive, '-C', building])
      rmSync(archive)
      await run(process.execPath, ['scripts/with-setup.mjs'], { cwd: building })
      renameSync(building, folder)
    } finally {
      rmSync(building, { recursive: true, force: true })
    }
  }
  return join(folder, 'services/cli/dist/main.js')
}
