import { SERVER_IDENTITY } from '@tutti/serving'
import { jsonReply, type RestReply } from '../answers/rest-reply.ts'
import type { RestRoute, RouteDocument } from '../call/rest-route.ts'
import { OPENAPI_SCHEMAS } from '../openapi-schemas.ts'

/** Adds a route for the OpenAPI document of all routes. */
export function withDocument(routes: readonly RestRoute[]): readonly RestRoute[] {
  let made: RestReply | undefined
  const all: readonly RestRoute[] = [
    ...routes,
    {
      method: 'GET',
      path: '/v2/openapi.json',
      group: 'metadata',
      admission: 'control',
      document: { summary: 'This document', answer: 'Object' },
      // Made on the first demand.
      answer: () => (made ??= jsonReply(openApiDocument(all))),
    },
  ]
  return all
}

/** The OpenAPI document of the routes that have a part in it. */
function openApiDocument(routes: readonly RestRoute[]): object {
  const offered = routes.filter(({ document }) => document !== 'none')
  const paths = Map.groupBy(offered, ({ path }) => path)
  return {
    openapi: '3.1.0',
    info: {
      title: 'v2 inference protocol over HTTP',
      version: SERVER_IDENTITY.version,
      description:
        'Errors have a body of the schema Error, and headers that begin with tutti-error-: reason, help (an address), and where it happened.',
    },
    paths: Object.fromEntries(
      [...paths].map(([path, all]) => [toTemplate(path), toItem(path, all)]),
    ),
    components: { schemas: OPENAPI_SCHEMAS },
  }
}

/** `:version(^\\d+$)` is `{version}`. */
function toTemplate(path: string): string {
  return path.replaceAll(/:([a-z]+)(\([^/]*\))?/g, '{$1}')
}

function toItem(path: string, routes: readonly RestRoute[]): object {
  const parameters = [...path.matchAll(/:([a-z]+)/g)].map(([, name]) => ({
    name,
    in: 'path',
    required: true,
    schema: { type: 'string' },
  }))
  return {
    ...(parameters.length > 0 && { parameters }),
    ...Object.fromEntries(
      routes.flatMap(({ method, document }) =>
        document === 'none' ? [] : [[method.toLowerCase(), toOperation(document)]],
      ),
    ),
  }
}

function toOperation({ summary, body, answer, answerType = 'application/json' }: RouteDocument) {
  return {
    summary,
    ...(body && { requestBody: { content: contentOf(body, 'application/json') } }),
    responses: {
      200: { description: 'OK', ...(answer && { content: contentOf(answer, answerType) }) },
      default: { description: 'An error', content: contentOf('Error', 'application/json') },
    },
  }
}

function contentOf(name: keyof typeof OPENAPI_SCHEMAS, type: string) {
  return { [type]: { schema: { $ref: `#/components/schemas/${name}` } } }
}
