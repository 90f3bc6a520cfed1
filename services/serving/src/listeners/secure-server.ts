import type { Server } from 'node:net'
import { Server as TlsServer } from 'node:tls'
import { type Clock, followFiles, type Logger } from '@tutti/chassis'
import { boundHandshakes } from './handshakes.ts'
import { followedFiles, type SecureOptions, toSecureOptions } from './secure-options.ts'

export interface SecureServerOptions {
  /** Options with which the server was made; undefined for one without TLS, which has nothing to keep. */
  readonly secure: SecureOptions | undefined
  readonly maxConnections: number
  readonly clock: Clock
  readonly log: Logger
}

/**
 * Bounds the handshakes of a server that has just begun to listen, and gives it the files' certificates when they change: for
 * new connections, those that are open keep theirs. What is refused is logged, and the former certificates stay.
 *
 * @returns ends it, with the handshakes; for a server that takes no more connections.
 */
export function keepSecure(server: Server, o: SecureServerOptions): () => void {
  const { secure, clock, log } = o
  if (secure === undefined || !(server instanceof TlsServer)) return () => {}
  const { files, texts } = secure
  const endHandshakes = boundHandshakes(server, o)
  server.on('tlsClientError', (error) => {
    if (log.isDebug) log.debug('tls handshake failed', { error })
  })
  const stop = followFiles({
    ...followedFiles(files),
    texts,
    take: (changed) => {
      const { options, validTo } = toSecureOptions(files, changed, clock)
      server.setSecureContext(options)
      log.info('certificates changed', { validTo: validTo.toISOString() })
    },
    failed: (error) => log.error('certificates cannot be used, those before stay', { error }),
    clock,
  })
  return () => {
    stop()
    endHandshakes()
  }
}
