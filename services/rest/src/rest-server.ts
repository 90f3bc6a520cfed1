import { createServer, type RequestListener, type Server } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { ServeError } from '@tutti/errors'
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
import { answerRefusals } from './http-refusals.ts'
import { RequestRunner } from './request-runner.ts'
import { REST_EVENTS } from './rest-events.ts'
import {
  type CompiledRestOptions,
  compileRestOptions,
  type RestServerOptions,
} from './rest-options.ts'
import { RouteTable } from './route-table.ts'
import { restRoutes } from './routes/routes.ts'

/** How often Node looks for requests that are late, at least. */
const CHECK_MS = 5000

/**
 * Starts the v2 HTTP server.
 *
 * @throws ServeError SETTING_INVALID if the address cannot be listened on, FLAG_INVALID for files of TLS that do not fit.
 */
export async function startRestServer(options: RestServerOptions): Promise<RunningServer> {
  const o = compileRestOptions(options)
  const runner = new RequestRunner(o)
  const secure = readSecureOptions(o.tls, o.clock)
  const server = createHttpServer(o, secure, toListener(o, runner))
  answerRefusals(server, runner)
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
      server.closeIdleConnections()
    },
    drain: ({ timeoutMs }) => drainWithin(timeoutMs, runner, o.clock),
    close: async () => {
      runner.stop()
      runner.failAll()
      const closed = new Promise((resolve) => server.close(resolve))
      endTls()
      server.closeAllConnections()
      await closed
      await runner.close()
    },
  }
}

/** Finds the route of each request, and has it run. */
function toListener(o: CompiledRestOptions, runner: RequestRunner): RequestListener {
  const table = new RouteTable(o.routes ?? restRoutes(o))
  const headers = Object.entries(o.headers)
  return (request, response) => {
    for (const [name, value] of headers) response.setHeader(name, value)
    try {
      const found = table.find(request)
      if (found.route !== undefined) {
        void runner.run(found.route, found.parameters, request, response)
        return
      }
      const { allowed } = found
      runner.reply(request, response, allowed ? methodNotAllowed(allowed) : notFound())
    } catch (error) {
      runner.reply(request, response, errorReply(ServeError.from(error)))
    }
  }
}

function createHttpServer(
  o: CompiledRestOptions,
  secure: SecureOptions | undefined,
  handler: RequestListener,
): Server {
  const options = {
    connectionsCheckingInterval: Math.min(CHECK_MS, o.headersTimeoutMs, o.requestTimeoutMs),
    headersTimeout: o.headersTimeoutMs,
    requestTimeout: o.requestTimeoutMs,
    keepAliveTimeout: o.keepAliveMs,
    // RouteTable looks at it.
    requireHostHeader: false,
  }
  if (secure === undefined) return createServer(options, handler)
  return createTlsServer({ ...options, ...secure.options }, handler)
}
