import { ServeError } from '@tutti/errors'
import type { ResponseSink, StepResponse } from '@tutti/tensor'
import type { HostCallOptions, HostRequest, ModelHost } from '../engine.ts'

/** The answers of a called model. */
export type ScriptedCall = (
  request: HostRequest,
  o: HostCallOptions,
) => AsyncIterable<Partial<StepResponse> & { readonly error?: ServeError }>

/** A server as models see it: each model that may be called is a function here. */
export class ScriptedHost implements ModelHost {
  /** Called models, by name. */
  readonly models = new Map<string, ScriptedCall>()
  readonly calls: { readonly request: HostRequest; readonly options: HostCallOptions }[] = []
  /** Requests besides calls, in words. */
  readonly control: string[] = []

  infer(request: HostRequest, sink: ResponseSink, options: HostCallOptions): void {
    this.calls.push({ request, options })
    const model = this.models.get(request.modelName)
    if (model === undefined) {
      const text = `Request for unknown model: '${request.modelName}' is not found`
      sink.fail(new ServeError('MODEL_NOT_FOUND', text), 'no')
      return
    }
    void this.#pass(model(request, options), sink)
  }

  async #pass(responses: ReturnType<ScriptedCall>, sink: ResponseSink): Promise<void> {
    const none = { outputs: [], parameters: new Map() }
    let index = 0
    try {
      for await (const { error, ...response } of responses) {
        if (error !== undefined) throw error
        sink.send({ index: index++, ...none, final: true, ...response })
        await sink.ready?.()
      }
      throw new ServeError('INTERNAL', 'the call ended without a final response')
    } catch (error) {
      sink.fail(ServeError.from(error), 'maybe')
    }
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
    // An unload that waits for the model that asks would never end.
    return new Promise(() => {})
  }
}
