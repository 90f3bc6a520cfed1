import { ServeError } from '@tutti/errors'
import type { HostCallOptions, HostRequest, HostResponse, ModelHost } from '../engine.ts'

/** A server as models see it: each model that may be called is a function here. */
export class ScriptedHost implements ModelHost {
  /** Called models, by name. */
  readonly models = new Map<
    string,
    (request: HostRequest, o: HostCallOptions) => AsyncIterable<Partial<HostResponse>>
  >()
  readonly calls: { readonly request: HostRequest; readonly options: HostCallOptions }[] = []
  /** What was asked for besides calls, in words. */
  readonly control: string[] = []

  async *infer(
    request: HostRequest,
    options: HostCallOptions,
  ): AsyncGenerator<HostResponse, undefined> {
    this.calls.push({ request, options })
    const model = this.models.get(request.modelName)
    const none = { outputs: [], parameters: new Map() }
    if (model === undefined) {
      const text = `Request for unknown model: '${request.modelName}' is not found`
      yield { ...none, final: true, error: new ServeError('MODEL_NOT_FOUND', text) }
      return
    }
    for await (const response of model(request, options))
      yield { ...none, final: true, ...response }
  }

  isReady(model: string, version: string): Promise<boolean> {
    this.control.push(`ready ${model} ${version}`)
    return Promise.resolve(this.models.has(model))
  }

  load(
    model: string,
    { config, files }: { readonly config: string; readonly files: ReadonlyMap<string, Uint8Array> },
  ): Promise<void> {
    const texts = [...files].map(([path, data]) => `${path}=${Buffer.from(data).toString()}`)
    this.control.push(`load ${model} ${config} ${texts.join(' ')}`.trim())
    return model === 'refused'
      ? Promise.reject(new ServeError('MODEL_CONTROL_REFUSED', 'not here'))
      : Promise.resolve()
  }

  unload(
    model: string,
    { unloadDependents }: { readonly unloadDependents: boolean },
  ): Promise<void> {
    this.control.push(`unload ${model} ${unloadDependents}`)
    if (model === 'refused')
      return Promise.reject(new ServeError('MODEL_CONTROL_REFUSED', 'not here'))
    // What waits for the model that asks would never end.
    return new Promise(() => {})
  }
}
