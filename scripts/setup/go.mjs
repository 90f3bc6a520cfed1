import { findInPath, firstLine } from './child.mjs'

/** The oldest Go that the modules that are built here allow. */
const OLDEST = [1, 26]

/**
 * The Go of PATH, if it is new enough.
 *
 * @returns {{ path: string } | { reason: string }} its path, or why there is none: part of a sentence.
 */
export function findGo(env) {
  const [path] = findInPath(process.platform === 'win32' ? 'go.exe' : 'go', env)
  if (path === undefined) return { reason: 'there is no Go in PATH' }
  const version = /go(\d+\.\d+\S*)/.exec(firstLine(path, ['version']) ?? '')?.[1]
  if (isAtLeast(version, OLDEST)) return { path }
  return { reason: `the Go in PATH is ${version ?? 'broken'}` }
}

/** For messages: the oldest Go that can build what is built here. */
export const OLDEST_GO = OLDEST.join('.')

/** The environment of a build that nothing of Go's around it changes. */
export function goEnvironment(env, more = {}) {
  return {
    ...env,
    GOWORK: 'off',
    GOFLAGS: '',
    GOTOOLCHAIN: 'local',
    CGO_ENABLED: '0',
    ...more,
  }
}

/** Whether `version`, a text, is `major.minor` or newer. */
export function isAtLeast(version, [major, minor]) {
  const [gotMajor, gotMinor] = (version ?? '').split('.').map(Number)
  return gotMajor > major || (gotMajor === major && gotMinor >= minor)
}
