import { homedir } from 'node:os'
import { isAbsolute, join } from 'node:path'
import type { ProcessEnvironment } from '@tutti/chassis'

/** Tutti's folder in the user's cache. The XDG Base Directory Specification has relative paths ignored. */
export function cacheFolder({ env }: Pick<ProcessEnvironment, 'env'>): string {
  const { XDG_CACHE_HOME: cache = '', HOME: home = homedir() } = env
  return join(isAbsolute(cache) ? cache : join(home, '.cache'), 'tutti')
}
