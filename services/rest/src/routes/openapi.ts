import { SERVER_IDENTITY } from '@tutti/serving'
import type { RestRoute } from '../call/rest-route.ts'
import { OPENAPI_SCHEMAS } from './openapi-schemas.ts'

type SchemaName = keyof typeof OPENAPI_SCHEMAS

/** What one method of a path does. */
interface Operation {
  readonly summary: string
  readonly body?: SchemaName
  readonly answer?: SchemaName
  /** Default JSON. */
  readonly answerType?: string
}

const READS_LOG = { summary: 'What is logged', answer: 'LogSettings' } as const
const READS_TRACES = { summary: 'What is traced', answer: 'TraceSettings' } as const
const SETS = { summary: 'Changes it; only for those who may load models' } as const

/** By the end of the path; the first row that fits counts. */
const OPERATIONS: readonly (readonly [RegExp, Readonly<Record<string, Operation>>])[] = [
  [/^\/v2$/, { GET: { summary: 'Metadata of the server', answer: 'ServerMetadata' } }],
  [/^\/v2\/openapi\.json$/, { GET: { summary: 'This document', answer: 'Object' } }],
  [/^\/v2\/health\/live$/, { GET: { summary: '200 while the server is live, else 400' } }],
  [/^\/v2\/health\/ready$/, { GET: { summary: '200 if the server is ready, else 400' } }],
  [/\/ready$/, { GET: { summary: '200 if the model is ready, else 400' } }],
  [/\/config$/, { GET: { summary: 'Configuration of the model, complete', answer: 'Object' } }],
  [/\/stats$/, { GET: { summary: 'Statistics', answer: 'Statistics' } }],
  [
    /\/infer$/,
    {
      POST: {
        summary:
          'Inference. Binary tensors may follow the JSON, whose length is in Inference-Header-Content-Length',
        body: 'InferRequest',
        answer: 'InferResponse',
      },
    },
  ],
  [
    /\/generate$/,
    {
      POST: {
        summary: 'Inference with inputs as members of one object; one response',
        body: 'GenerateRequest',
        answer: 'GenerateResponse',
      },
    },
  ],
  [
    /\/generate_stream$/,
    {
      POST: {
        summary: 'The same, with an event for each response',
        body: 'GenerateRequest',
        answer: 'GenerateResponse',
        answerType: 'text/event-stream',
      },
    },
  ],
  [
    /\/index$/,
    { POST: { summary: 'The models of the repository', body: 'IndexRequest', answer: 'Index' } },
  ],
  [/\/load$/, { POST: { summary: 'Loads a model', body: 'LoadRequest' } }],
  [/\/unload$/, { POST: { summary: 'Unloads a model', body: 'UnloadRequest' } }],
  [/\/logging$/, { GET: READS_LOG, POST: { ...SETS, body: 'LogSettings', answer: 'LogSettings' } }],
  [
    /\/trace\/setting$/,
    { GET: READS_TRACES, POST: { ...SETS, body: 'TraceSettings', answer: 'TraceSettings' } },
  ],
  [
    /sharedmemory.*\/status$/,
    { GET: { summary: 'The regions of shared memory that are registered', answer: 'Regions' } },
  ],
  [
    /sharedmemory.*\/register$/,
    { POST: { summary: 'Registers shared memory of the client', body: 'RegionRequest' } },
  ],
  [
    /sharedmemory.*\/unregister$/,
    { POST: { summary: 'Forgets a region, or all that no request in work writes into' } },
  ],
  [/:model$|\/:version[^/]*$/, { GET: { summary: 'Metadata of the model', answer: 'Metadata' } }],
]

/** What a route is documented with, by method. */
export function operationsOf(path: string): Readonly<Record<string, Operation>> | undefined {
  return OPERATIONS.find(([pattern]) => pattern.test(path))?.[1]
}

/** The OpenAPI document of the routes that answer anything but that they are not offered. */
export function openApiDocument(routes: readonly RestRoute[]): object {
  const offered = routes.filter(({ isRefused }) => isRefused !== true)
  return {
    openapi: '3.1.0',
    info: {
      title: 'v2 inference protocol over HTTP',
      version: SERVER_IDENTITY.version,
      description:
        'Errors have a body of the schema Error, and headers that begin with tutti-error-: reason, help (an address), and where it happened.',
    },
    paths: Object.fromEntries(offered.map((route) => [toTemplate(route.path), toItem(route)])),
    components: { schemas: OPENAPI_SCHEMAS },
  }
}

/** `:version(^\\d+$)` is `{version}`. */
function toTemplate(path: string): string {
  return path.replaceAll(/:([a-z]+)(\([^/]*\))?/g, '{$1}')
}

function toItem({ path, methods }: RestRoute): object {
  const parameters = [...path.matchAll(/:([a-z]+)/g)].map(([, name]) => ({
    name,
    in: 'path',
    required: true,
    schema: { type: 'string' },
  }))
  const operations = operationsOf(path) ?? {}
  return {
    ...(parameters.length > 0 && { parameters }),
    ...Object.fromEntries(
      methods.flatMap((method) => {
        const operation = operations[method]
        return operation === undefined ? [] : [[method.toLowerCase(), toOperation(operation)]]
      }),
    ),
  }
}

function toOperation({ summary, body, answer, answerType = 'application/json' }: Operation) {
  return {
    summary,
    ...(body && { requestBody: { content: contentOf(body, 'application/json') } }),
    responses: {
      200: { description: 'OK', ...(answer && { content: contentOf(answer, answerType) }) },
      default: { description: 'An error', content: contentOf('Error', 'application/json') },
    },
  }
}

function contentOf(name: SchemaName, type: string) {
  return { [type]: { schema: { $ref: `#/components/schemas/${name}` } } }
}
