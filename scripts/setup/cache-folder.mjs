import { homedir } from 'node:os'
import { join } from 'node:path'

/** Where what is built or installed once is kept, outside any checkout. */
export function cacheFolder(env = process.env) {
  return join(env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'tutti')
}
