import { createServer, type Server } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import { ServeError } from '@tutti/errors'
import { type Exchange, Http1Connections } from '@tutti/http'
import {
  boundConnections,
  drainWithin,
  keepSecure,
  listenOn,
  type RunningServer,
  readSecureOptions,
  type SecureOptions,
} from '@tutti/serving'
import { errorReply, methodNotAllowed, notFound } from './answers/rest-reply.ts'
import { refuseHead, refuseUnread } from './http-refusals.ts'
import { RequestRunner } from './request-runner.ts'
import { REST_EVENTS } from './rest-events.ts'
import {
  type CompiledRestOptions,
  compileRestOptions,
  type RestServerOptions,
} from './rest-options.ts'
import { RouteTable } from './route-table.ts'
import { restRoutes } from './routes/routes.ts'

/**
 * Starts the v2 HTTP server.
 *
 * @throws ServeError SETTING_INVALID if the address cannot be listened on, FLAG_INVALID for files of TLS that do not fit.
 */
export async function startRestServer(options: RestServerOptions): Promise<RunningServer> {
  const o = compileRestOptions(options)
  const runner = new RequestRunner(o)
  const secure = readSecureOptions(o.tls, o.clock)
  const server = createHttpServer(secure)
  const connections = new Http1Connections(
    server,
    { request: toListener(o, runner), refusal: refuseUnread },
    o,
  )
  boundConnections(server, {
    ...o,
    busy: () => runner.busyConnections(),
    end: (socket) => void socket.destroy(),
    onRefused: () => o.log.warn(REST_EVENTS.connectionDropped),
  })
  const onError = (error: Error): void => o.log.error(REST_EVENTS.listenerFailed, { error })
  const { address } = o
  const port = await listenOn(server, { address, port: o.port, onError })
  const endTls = keepSecure(server, { ...o, secure })
  return {
    port,
    stopAccepting: () => {
      runner.stop()
      server.close()
      endTls()
      connections.stop()
    },
    drain: ({ timeoutMs }) => drainWithin(timeoutMs, runner, o.clock),
    close: async () => {
      runner.stop()
      runner.failAll()
      const closed = new Promise((resolve) => server.close(resolve))
      endTls()
      connections.destroy()
      await closed
      await runner.close()
    },
  }
}

/** Finds the route of each request, and has it run. */
function toListener(o: CompiledRestOptions, runner: RequestRunner): (exchange: Exchange) => void {
  const table = new RouteTable(o.routes ?? restRoutes(o))
  const headers = Object.entries(o.headers)
  return (exchange) => {
    for (const [name, value] of headers) exchange.setHeader(name, value)
    try {
      const refusal = refuseHead(exchange.head)
      if (refusal !== undefined) return runner.reply(exchange, refusal)
      const found = table.find(exchange.head)
      if (found.route !== undefined) {
        void runner.run(found.route, found.parameters, exchange)
        return
      }
      const { allowed } = found
      runner.reply(exchange, allowed ? methodNotAllowed(allowed) : notFound())
    } catch (error) {
      runner.reply(exchange, errorReply(ServeError.from(error)))
    }
  }
}

function createHttpServer(secure: SecureOptions | undefined): Server {
  if (secure === undefined) return createServer({ noDelay: true })
  return createTlsServer({ ...secure.options, noDelay: true, ALPNProtocols: ['http/1.1'] })
}
