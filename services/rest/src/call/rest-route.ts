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

/** One call of an HTTP API, with everything that is said of it: the server, restrictions and the OpenAPI document derive from it. */
export interface RestRoute {
  readonly method: RestMethod
  /** `:name` stands for one segment. */
  readonly path: string
  /** With which calls it is restricted; those of a page have rules of their own. */
  readonly group: ApiGroup | 'page'
  /** `none` answers while the server stops, too; the bodies of `control` are small, whatever the server's bound is. */
  readonly admission: AdmissionClass
  /** `none` for what only says that it is not offered, and for pages. */
  readonly document: RouteDocument | 'none'
  answer(call: RestCall): RestReply | Promise<RestReply>
}
