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
 * Bounds the handshakes of a TLS server that has just begun to listen, and gives it new certificates when their files change.
 * Open connections keep theirs. If the new files cannot be used, it logs that and keeps the former certificates.
 *
 * @returns a function that ends this and all handshakes, for a server that accepts no more connections.
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
