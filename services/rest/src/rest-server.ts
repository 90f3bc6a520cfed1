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
import { type FastifyInstance, fastify } from 'fastify'
import { errorReply, methodNotAllowed, notFound } from './answers/rest-reply.ts'
import type { RestRoute } from './call/rest-route.ts'
import { answerRefusals, hostFault } from './http-refusals.ts'
import { RequestRunner } from './request-runner.ts'
import { REST_EVENTS } from './rest-events.ts'
import {
  type CompiledRestOptions,
  compileRestOptions,
  type RestServerOptions,
} from './rest-options.ts'
import { restRoutes } from './routes/routes.ts'

/** Longer than any request line that Node takes, so that the router never cuts a model's name. */
const MAX_PARAMETER_LENGTH = 65_536
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
  const app = createApp(o, runner, secure)
  const paths = Map.groupBy(o.routes ?? restRoutes(o), ({ path }) => path)
  for (const [path, routes] of paths) addPath(app, path, routes, runner)
  app.setNotFoundHandler((request, reply) => {
    reply.hijack()
    runner.reply(request.raw, reply.raw, notFound())
  })
  await app.ready()
  answerRefusals(app.server, runner)
  boundConnections(app.server, {
    ...o,
    busy: () => runner.busyConnections(),
    end: (socket) => void socket.destroy(),
    onRefused: () => o.log.warn(REST_EVENTS.connectionDropped),
  })
  const onError = (error: Error): void => o.log.error(REST_EVENTS.listenerFailed, { error })
  const { address } = o
  const port = await listenOn(app.server, { address, port: o.port, onError })
  const endTls = keepSecure(app.server, { ...o, secure })
  return {
    port,
    stopAccepting: () => {
      runner.stop()
      app.server.close()
      endTls()
      app.server.closeIdleConnections()
    },
    drain: ({ timeoutMs }) => drainWithin(timeoutMs, runner, o.clock),
    close: async () => {
      runner.stop()
      runner.failAll()
      app.server.close()
      endTls()
      app.server.closeAllConnections()
      await app.close()
      await runner.close()
    },
  }
}

function createApp(
  o: CompiledRestOptions,
  runner: RequestRunner,
  secure: SecureOptions | undefined,
): FastifyInstance {
  const app = fastify({
    serverFactory: (handler) =>
      createHttpServer(o, secure, (request, response) => {
        const fault = hostFault(request)
        if (fault === undefined) handler(request, response)
        else runner.reply(request, response, errorReply(fault))
      }),
    // Those are answered by answerRefusals.
    clientErrorHandler: () => undefined,
    routerOptions: { maxParamLength: MAX_PARAMETER_LENGTH },
    exposeHeadRoutes: false,
    frameworkErrors: (cause, request, reply) => {
      reply.hijack()
      const error = new ServeError('MALFORMED_MESSAGE', cause.message, { cause })
      runner.reply(request.raw, reply.raw, errorReply(error))
    },
  })
  // Bodies are read by the routes themselves, under their bounds; a content type decides nothing here, as in Triton.
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', (_request, _body, done) => done(null))
  const headers = Object.entries(o.headers)
  app.addHook('onRequest', (request, reply, done) => {
    // Not deleted, which would make every look at the headers slow.
    request.raw.headers['content-type'] = undefined
    for (const [name, value] of headers) reply.raw.setHeader(name, value)
    done()
  })
  return app
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
    // hostFault says why.
    requireHostHeader: false,
  }
  if (secure === undefined) return createServer(options, handler)
  return createTlsServer({ ...options, ...secure.options }, handler)
}

function addPath(
  app: FastifyInstance,
  path: string,
  routes: readonly RestRoute[],
  runner: RequestRunner,
): void {
  app.all<{ Params: Record<string, string | undefined> }>(path, (request, reply) => {
    reply.hijack()
    // The router lets names be empty, as in /v2/models//infer.
    if (Object.values(request.params).includes('')) {
      return runner.reply(request.raw, reply.raw, notFound())
    }
    const route = routes.find(({ method }) => method === request.method)
    if (route !== undefined) return runner.run(route, request.params, request.raw, reply.raw)
    const allowed = routes.map(({ method }) => method)
    runner.reply(request.raw, reply.raw, methodNotAllowed(allowed))
    return undefined
  })
}
