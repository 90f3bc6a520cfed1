import type { StartProgress } from '@tutti/api'
import { createProbeServer, type Logger, type TransferProgress } from '@tutti/chassis'
import { listenOn } from '@tutti/serving'

/**
 * Answers `GET /tutti/v1/start` with how far a fetch is, for the operator. A port that cannot be had is no reason not to fetch: it
 * is logged.
 *
 * @param port - 0 to serve nothing.
 * @returns a function that ends it.
 */
export async function serveProgress(
  port: number,
  o: { readonly progress: Pick<TransferProgress, 'state'>; readonly log: Logger },
): Promise<() => void> {
  if (port === 0) return () => {}
  const server = createProbeServer(({ url }, response) => {
    const transfer = o.progress.state()
    const answer: StartProgress = { loads: [], ...(transfer !== undefined && { transfer }) }
    if (url === '/tutti/v1/start') response.end(JSON.stringify(answer))
    else response.writeHead(404).end()
  })
  const onError = (error: Error): void =>
    o.log.warn('progress of the fetch is not served', { error })
  try {
    await listenOn(server, { address: '::', port, onError })
  } catch (error) {
    o.log.warn('progress of the fetch is not served', { error })
  }
  return () => {
    server.close()
    server.closeAllConnections()
  }
}
