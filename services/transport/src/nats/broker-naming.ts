import { ServeError } from '@tutti/errors'

/** A field of BrokerOptions, as a path. */
export type BrokerField =
  | 'servers'
  | 'user'
  | 'password'
  | 'token'
  | 'nkeyFile'
  | 'credentialsFile'
  | 'tls.caFile'
  | 'tls.certFile'
  | 'tls.keyFile'

/** Names for fields of the options in errors: their writer knows a field as a flag or as a setting. */
export interface BrokerNaming {
  readonly name: (field: BrokerField) => string
  readonly refusal: (field: BrokerField, what: string, cause?: unknown) => ServeError
}

export const SETTING_NAMES: BrokerNaming = {
  name: (field) => field,
  refusal: (field, what, cause) =>
    new ServeError('SETTING_INVALID', `broker ${field}: ${what}`, { details: { field }, cause }),
}
