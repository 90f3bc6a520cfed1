import { ServeError } from '@tutti/errors'
import { type ModelStatistics, toJsonConfig } from '@tutti/model-config'
import { statisticsBody } from '@tutti/protocol'
import {
  type ControlCalls,
  type InferenceBackend,
  requireControl,
  type ServerIdentity,
} from '@tutti/serving'
import { emptyReply, errorReply, jsonReply, type RestReply } from '../answers/rest-reply.ts'
import { refuseForeignPage } from '../call/refuse-foreign-page.ts'
import type { RestCall } from '../call/rest-call.ts'
import type { RestMethod, RestRoute } from '../call/rest-route.ts'
import { answerGenerate, answerGenerateStream } from './generate-call.ts'
import { answerInfer } from './infer-call.ts'
import { openApiDocument } from './openapi.ts'
import { regionRoutes } from './region-routes.ts'
import { type SettingsRouteOptions, settingsRoutes } from './settings-routes.ts'

export interface RouteOptions extends SettingsRouteOptions {
  readonly identity: ServerIdentity
}

/** All routes (triton-semantics 4.10). */
export function restRoutes(o: RouteOptions): readonly RestRoute[] {
  const routes: RestRoute[] = [
    ...healthRoutes(o),
    ...modelRoutes(),
    ...repositoryRoutes(o),
    ...regionRoutes(o.control),
    ...settingsRoutes(o),
  ]
  const document = lazy(() => jsonReply(openApiDocument(routes)))
  routes.push({ path: '/v2/openapi.json', methods: ['GET'], answer: document })
  return routes
}

/** Made on the first demand. */
function lazy<T>(make: () => T): () => T {
  let made: T | undefined
  return () => (made ??= make())
}

function healthRoutes({ identity }: RouteOptions): readonly RestRoute[] {
  return [
    { path: '/v2', methods: ['GET'], answer: () => jsonReply(identity) },
    healthRoute('/v2/health/live', (backend) => backend.isLive()),
    healthRoute('/v2/health/ready', (backend) => backend.isReady()),
  ]
}

function healthRoute(path: string, isGood: (backend: InferenceBackend) => boolean): RestRoute {
  return {
    path,
    methods: ['GET'],
    isHealth: true,
    answer: ({ backend }) => emptyReply(isGood(backend) ? 200 : 400),
  }
}

function modelRoutes(): readonly RestRoute[] {
  return [
    {
      path: '/v2/models/stats',
      methods: ['GET'],
      answer: async ({ backend }) => statisticsReply(await backend.statistics('', '')),
    },
    ...ofModel('', 'GET', (name, version, { backend }) =>
      jsonReply(backend.modelMetadata(name, version)),
    ),
    ...ofModel('/config', 'GET', (name, version, { backend }) =>
      jsonReply(toJsonConfig(backend.resolve(name, version).config)),
    ),
    ...ofModel('/stats', 'GET', async (name, version, { backend }) =>
      statisticsReply(await backend.statistics(name, version)),
    ),
    ...ofModel('/ready', 'GET', (name, version, { backend }) =>
      answerReady(backend, name, version),
    ),
    ...ofModel('/infer', 'POST', (_name, _version, call) => answerInfer(call)),
    ...ofModel('/generate', 'POST', (_name, _version, call) => answerGenerate(call)),
    ...ofModel('/generate_stream', 'POST', (_name, _version, call) => answerGenerateStream(call)),
  ]
}

async function answerReady(
  backend: InferenceBackend,
  name: string,
  version: string,
): Promise<RestReply> {
  if (await backend.isModelReady(name, version)) return emptyReply(200)
  // Triton says 400 here, so the code is not MODEL_NOT_READY's own UNAVAILABLE.
  return errorReply(
    new ServeError('MODEL_NOT_READY', 'Model version not ready', { code: 'INVALID_ARGUMENT' }),
  )
}

async function answerIndex(call: RestCall): Promise<RestReply> {
  const isReadyOnly = await call.parse('index', await call.smallBody())
  const entries = await call.backend.repositoryIndex(isReadyOnly)
  // Empty members are left out (triton-semantics 3.5).
  return jsonReply(
    entries.map(({ name, version, state, reason }) =>
      Object.fromEntries(
        Object.entries({ name, version, state, reason }).filter(([, value]) => value !== ''),
      ),
    ),
  )
}

/** Counts stay bigint: `jsonReply` writes them with all their digits. */
function statisticsReply(statistics: readonly ModelStatistics[]): RestReply {
  return jsonReply(statisticsBody(statistics, (value) => value))
}

function repositoryRoutes({ control }: RouteOptions): readonly RestRoute[] {
  return [
    { path: '/v2/repository/index', methods: ['POST'], answer: answerIndex },
    { path: '/v2/repository/:repository/index', methods: ['POST'], answer: answerIndex },
    ...controlRoutes('load', control, async (model, call) => {
      const models = requireControl(call.backend.control)
      await models.load(model, await call.parse('load', await call.body()))
    }),
    ...controlRoutes('unload', control, async (model, call) => {
      const models = requireControl(call.backend.control)
      const unloadDependents = await call.parse('unload', await call.smallBody())
      await models.unload(model, { unloadDependents })
    }),
  ]
}

function controlRoutes(
  action: 'load' | 'unload',
  control: ControlCalls,
  apply: (model: string, call: RestCall) => Promise<void>,
): readonly RestRoute[] {
  return [
    {
      path: `/v2/repository/models/:model/${action}`,
      methods: ['POST'],
      answer: async (call) => {
        const { model = '' } = call.parameters
        await control.run({ ...call.caller, action, model }, async () => {
          refuseForeignPage(call.caller.headers)
          await apply(model, call)
        })
        return emptyReply(200)
      },
    },
    {
      path: `/v2/repository/:repository/models/:model/${action}`,
      methods: ['POST'],
      isRefused: true,
      answer: refuseNamedRepository,
    },
  ]
}

function refuseNamedRepository(): RestReply {
  throw new ServeError('UNSUPPORTED', "'repository_name' specification is not supported")
}

function modelPaths(suffix: string): readonly string[] {
  return [`/v2/models/:model${suffix}`, `/v2/models/:model/versions/:version(^\\d+$)${suffix}`]
}

function ofModel(
  suffix: string,
  method: RestMethod,
  answer: (name: string, version: string, call: RestCall) => RestReply | Promise<RestReply>,
): readonly RestRoute[] {
  return modelPaths(suffix).map((path) => ({
    path,
    methods: [method],
    answer: (call) =>
      answer(call.parameters['model'] ?? '', call.parameters['version'] ?? '', call),
  }))
}
