import { spawnSync } from 'node:child_process'
import { env } from 'node:process'

const OLDEST = [2, 15] as const

let found: { readonly path: string | undefined } | undefined

/**
 * Finds the nats-server for tests: the program that TUTTI_NATS_SERVER names, else a nats-server in PATH of version 2.15 or newer.
 *
 * @returns its path or name; undefined if there is none.
 * @throws Error if TUTTI_NATS_SERVER names a program that does not run or is too old.
 */
export function findNatsServer(): string | undefined {
  found ??= { path: search() }
  return found.path
}

/** Makes the value for tap's `skip`: why tests that need a nats-server cannot run, or false if they can. */
export function withoutNatsServer(): string | false {
  if (findNatsServer() !== undefined) return false
  return 'no nats-server 2.15 or newer in PATH, and TUTTI_NATS_SERVER is not set'
}

function search(): string | undefined {
  const named = env['TUTTI_NATS_SERVER']
  if (named === undefined || named === '')
    return isUsable('nats-server') ? 'nats-server' : undefined
  if (isUsable(named)) return named
  throw new Error(`TUTTI_NATS_SERVER is ${named}, want a nats-server 2.15 or newer`)
}

function isUsable(path: string): boolean {
  const { status, stdout } = spawnSync(path, ['--version'], { encoding: 'utf8' })
  const [, major, minor] = /v(\d+)\.(\d+)\./.exec(status === 0 ? stdout : '') ?? []
  if (major === undefined || minor === undefined) return false
  return Number(major) > OLDEST[0] || (Number(major) === OLDEST[0] && Number(minor) >= OLDEST[1])
}
