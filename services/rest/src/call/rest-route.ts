import type { AdmissionClass, ApiGroup } from '@tutti/serving'
import type { RestReply } from '../answers/rest-reply.ts'
import type { OPENAPI_SCHEMAS } from '../openapi-schemas.ts'
import type { RestCall } from './rest-call.ts'

export type RestMethod = 'GET' | 'POST'

type SchemaName = keyof typeof OPENAPI_SCHEMAS

/** A call in the OpenAPI document. */
export interface RouteDocument {
  readonly summary: string
  readonly body?: SchemaName
  readonly answer?: SchemaName
  /** JSON if absent. */
  readonly answerType?: string
}

/**
 * One call of an HTTP API, with everything that is said of it: the server, restrictions and the OpenAPI document derive from
 * it.
 */
export interface RestRoute {
  readonly method: RestMethod
  /** `:name` stands for one segment. */
  readonly path: string
  /** The API group with whose calls this one is restricted; `page` for calls of pages, which have rules of their own. */
  readonly group: ApiGroup | 'page'
  /**
   * Class of the call: `none` is answered while the server stops, too; `control` has small bodies, whatever the server's bound.
   */
  readonly admission: AdmissionClass
  /** Entry of the OpenAPI document; `none` for pages, and for paths that only refuse. */
  readonly document: RouteDocument | 'none'
  answer(call: RestCall): RestReply | Promise<RestReply>
}
