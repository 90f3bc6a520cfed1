import { homedir } from 'node:os'
import { isAbsolute, join } from 'node:path'
import type { ProcessEnvironment } from '@tutti/chassis'

/**
 * Gives the path of Tutti's folder in the user's cache. As the XDG Base Directory Specification says, relative paths are ignored.
 */
export function cacheFolder({ env }: Pick<ProcessEnvironment, 'env'>): string {
  const { XDG_CACHE_HOME: cache = '', HOME: home = homedir() } = env
  return join(isAbsolute(cache) ? cache : join(home, '.cache'), 'tutti')
}
