import { createHash } from 'node:crypto'
import { mkdirSync, readdirSync, statSync, unlinkSync } from 'node:fs'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import { hostPort } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import { messageOf, propertyOf } from '../foreign-error.ts'
import type { DirectOptions, HostPort } from './direct-sockets.ts'

/** The options with which a step takes connections. */
export interface DirectListenerContext {
  readonly direct: DirectOptions
  readonly member: string
  readonly accept: (socket: Socket) => void
  readonly failed: (error: Error) => void
}

/** A server that takes direct connections. */
export interface DirectServer {
  /** Address as heartbeats say it. */
  readonly address: string
  /** Takes no more connections, and removes a socket of the file system. */
  close(): void
}

/**
 * @returns undefined if the options say no place.
 * @throws ServeError SETTING_INVALID if it cannot listen there.
 */
export async function listenDirect(o: DirectListenerContext): Promise<DirectServer | undefined> {
  const { direct, accept, failed, member } = o
  if (direct.kind !== 'unix' && direct.listen === undefined) return undefined
  const server = createServer({ pauseOnConnect: true, noDelay: true }, accept)
  if (direct.kind === 'unix') {
    const path = await openDirectory(direct.directory, member)
    await listen(server, { path }, path)
    server.on('error', failed)
    return { address: `unix:${path}`, close: () => void server.close() }
  }
  const { host, port } = direct.listen ?? { host: '', port: 0 }
  await listen(server, { host, port }, hostPort(host, port))
  server.on('error', failed)
  const reached = direct.announce ?? { host, port: portOf(server) }
  return {
    address: `${direct.kind}://${hostPort(reached.host, reached.port)}`,
    close: () => void server.close(),
  }
}

function portOf(server: Server): number {
  const address = server.address()
  return typeof address === 'object' && address !== null ? address.port : 0
}

function listen(server: Server, at: { path: string } | HostPort, where: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (cause) => reject(refusal(`cannot listen at ${where}: ${cause.message}`)))
    server.listen(at, () => {
      server.removeAllListeners('error')
      resolve()
    })
  })
}

/** Bytes of the name of a socket in its directory. */
export const SOCKET_NAME_BYTES = '0123456789abcdef.sock'.length

/** Opens the directory of the socket. A path has at most 107 bytes, so it does not contain the member's id. */
async function openDirectory(directory: string, member: string): Promise<string> {
  try {
    mkdirSync(directory, { recursive: true, mode: 0o700 })
    checkDirectory(directory)
    await removeStale(directory)
  } catch (error) {
    throw error instanceof ServeError
      ? error
      : refusal(`directory ${directory}: ${messageOf(error)}`)
  }
  const name = createHash('sha256').update(member).digest('hex').slice(0, 16)
  return join(directory, `${name}.sock`)
}

/** Checks that other users can neither connect nor replace our socket. */
function checkDirectory(directory: string): void {
  const { uid, mode } = statSync(directory)
  const own = process.getuid?.()
  if (own !== undefined && uid !== own) {
    throw refusal(`directory ${directory} belongs to user ${uid}, want ${own}`)
  }
  const rights = mode & 0o777
  if ((rights & 0o077) === 0) return
  throw refusal(`directory ${directory} has mode ${rights.toString(8)}, want 700`)
}

/** A process that was killed leaves its socket, where nothing listens. A young one may be about to listen. */
const YOUNG_MS = 10_000

async function removeStale(directory: string): Promise<void> {
  const sockets = readdirSync(directory).filter((name) => name.endsWith('.sock'))
  await Promise.all(sockets.map((name) => removeIfStale(join(directory, name))))
}

async function removeIfStale(path: string): Promise<void> {
  try {
    if (Date.now() - statSync(path).mtimeMs < YOUNG_MS) return
    if ((await connectCode(path)) === 'ECONNREFUSED') unlinkSync(path)
  } catch {
    // Another process has removed it meanwhile.
  }
}

/** @returns with what connecting fails; undefined if it does not. */
function connectCode(path: string): Promise<unknown> {
  return new Promise((resolve) => {
    const socket = connect({ path })
    socket.on('connect', () => {
      socket.destroy()
      resolve(undefined)
    })
    socket.on('error', (error) => resolve(propertyOf(error, 'code')))
  })
}

function refusal(what: string): ServeError {
  return new ServeError('SETTING_INVALID', `direct transport: ${what}`, {
    details: { field: 'direct' },
  })
}
