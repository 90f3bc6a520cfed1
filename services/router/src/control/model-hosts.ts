import type { LoadParameters } from '@tutti/front-door'

/** What executes models that are no ensembles: the step of this process, or those behind the broker. */
export interface ModelHosts {
  /** Names of all models that it could load. */
  names(): Promise<readonly string[]>
  /**
   * Resolves when the model is READY, at once if nothing changed.
   * @throws ServeError with the texts of triton-semantics 3.3.
   */
  load(name: string, parameters?: LoadParameters): Promise<void>
  /** Resolves when the model takes no new requests. Unknown names are no error. */
  unload(name: string): Promise<void> | void
}
