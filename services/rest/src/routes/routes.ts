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
import type { RestRoute } from '../call/rest-route.ts'
import { answerGenerate, answerGenerateStream } from './generate-call.ts'
import { answerInfer } from './infer-call.ts'
import { withDocument } from './openapi.ts'
import { regionRoutes } from './region-routes.ts'
import { type SettingsRouteOptions, settingsRoutes } from './settings-routes.ts'

export interface RouteOptions extends SettingsRouteOptions {
  readonly identity: ServerIdentity
}

/** Builds all routes of the v2 HTTP API (triton-semantics 4.10). */
export function restRoutes(o: RouteOptions): readonly RestRoute[] {
  return withDocument([
    ...serverRoutes(o),
    ...modelRoutes(),
    ...inferRoutes(),
    ...repositoryRoutes(o),
    ...regionRoutes(o.control),
    ...settingsRoutes(o),
  ])
}

function serverRoutes({ identity }: RouteOptions): readonly RestRoute[] {
  return [
    {
      method: 'GET',
      path: '/v2',
      group: 'metadata',
      admission: 'control',
      document: { summary: 'Metadata of the server', answer: 'ServerMetadata' },
      answer: () => jsonReply(identity),
    },
    {
      method: 'GET',
      path: '/v2/health/live',
      group: 'health',
      admission: 'none',
      document: { summary: '200 while the server is live, else 400' },
      answer: ({ backend }) => emptyReply(backend.isLive() ? 200 : 400),
    },
    {
      method: 'GET',
      path: '/v2/health/ready',
      group: 'health',
      admission: 'none',
      document: { summary: '200 if the server is ready, else 400' },
      answer: ({ backend }) => emptyReply(backend.isReady() ? 200 : 400),
    },
    {
      method: 'GET',
      path: '/v2/models/stats',
      group: 'statistics',
      admission: 'control',
      document: { summary: 'Statistics', answer: 'Statistics' },
      answer: async ({ backend }) => statisticsReply(await backend.statistics('', '')),
    },
  ]
}

function modelRoutes(): readonly RestRoute[] {
  return [
    ...ofModel('', {
      method: 'GET',
      group: 'metadata',
      admission: 'control',
      document: { summary: 'Metadata of the model', answer: 'Metadata' },
      answer: (name, version, { backend }) => jsonReply(backend.modelMetadata(name, version)),
    }),
    ...ofModel('/config', {
      method: 'GET',
      group: 'model-config',
      admission: 'control',
      document: { summary: 'Configuration of the model, complete', answer: 'Object' },
      answer: (name, version, { backend }) =>
        jsonReply(toJsonConfig(backend.resolve(name, version).config)),
    }),
    ...ofModel('/stats', {
      method: 'GET',
      group: 'statistics',
      admission: 'control',
      document: { summary: 'Statistics', answer: 'Statistics' },
      answer: async (name, version, { backend }) =>
        statisticsReply(await backend.statistics(name, version)),
    }),
    ...ofModel('/ready', {
      method: 'GET',
      group: 'health',
      admission: 'control',
      document: { summary: '200 if the model is ready, else 400' },
      answer: (name, version, { backend }) => answerReady(backend, name, version),
    }),
  ]
}

function inferRoutes(): readonly RestRoute[] {
  const infer = { method: 'POST', group: 'inference', admission: 'request' } as const
  return [
    ...ofModel('/infer', {
      ...infer,
      document: {
        summary:
          'Inference. Binary tensors may follow the JSON, whose length is in Inference-Header-Content-Length',
        body: 'InferRequest',
        answer: 'InferResponse',
      },
      answer: (_name, _version, call) => answerInfer(call),
    }),
    ...ofModel('/generate', {
      ...infer,
      document: {
        summary: 'Inference with inputs as members of one object; one response',
        body: 'GenerateRequest',
        answer: 'GenerateResponse',
      },
      answer: (_name, _version, call) => answerGenerate(call),
    }),
    ...ofModel('/generate_stream', {
      ...infer,
      document: {
        summary: 'The same, with an event for each response',
        body: 'GenerateRequest',
        answer: 'GenerateResponse',
        answerType: 'text/event-stream',
      },
      answer: (_name, _version, call) => answerGenerateStream(call),
    }),
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
  const isReadyOnly = await call.parse('index', await call.body())
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
    ...['', '/:repository'].map(
      (repository): RestRoute => ({
        method: 'POST',
        path: `/v2/repository${repository}/index`,
        group: 'model-repository',
        admission: 'control',
        document: {
          summary: 'The models of the repository',
          body: 'IndexRequest',
          answer: 'Index',
        },
        answer: answerIndex,
      }),
    ),
    ...controlRoutes('load', control, {
      admission: 'request',
      document: { summary: 'Loads a model', body: 'LoadRequest' },
      apply: async (model, call) => {
        const models = requireControl(call.backend.control)
        await models.load(model, await call.parse('load', await call.body()))
      },
    }),
    ...controlRoutes('unload', control, {
      admission: 'control',
      document: { summary: 'Unloads a model', body: 'UnloadRequest' },
      apply: async (model, call) => {
        const models = requireControl(call.backend.control)
        const unloadDependents = await call.parse('unload', await call.body())
        await models.unload(model, { unloadDependents })
      },
    }),
  ]
}

interface ControlRoute extends Pick<RestRoute, 'admission' | 'document'> {
  readonly apply: (model: string, call: RestCall) => Promise<void>
}

function controlRoutes(
  action: 'load' | 'unload',
  control: ControlCalls,
  { apply, ...record }: ControlRoute,
): readonly RestRoute[] {
  const all = { ...record, method: 'POST', group: 'model-repository' } as const
  return [
    {
      ...all,
      path: `/v2/repository/models/:model/${action}`,
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
      ...all,
      path: `/v2/repository/:repository/models/:model/${action}`,
      document: 'none',
      answer: refuseNamedRepository,
    },
  ]
}

function refuseNamedRepository(): RestReply {
  throw new ServeError('UNSUPPORTED', "'repository_name' specification is not supported")
}

interface ModelRoute extends Omit<RestRoute, 'path' | 'answer'> {
  readonly answer: (name: string, version: string, call: RestCall) => RestReply | Promise<RestReply>
}

/** The same call for the latest version of a model, and for one that is named. */
function ofModel(suffix: string, { answer, ...record }: ModelRoute): readonly RestRoute[] {
  return ['', '/versions/:version(^\\d+$)'].map((version) => ({
    ...record,
    path: `/v2/models/:model${version}${suffix}`,
    answer: (call) =>
      answer(call.parameters['model'] ?? '', call.parameters['version'] ?? '', call),
  }))
}
