import { monotonicNs } from '@tutti/chassis'
import { bug, type CancelSignal, ServeError } from '@tutti/errors'
import type { NamedTensor, StepRequest } from '@tutti/tensor'
import type { BatchOptions, EngineRequest, ExecutionTimes, LoadedModel } from '../../engine.ts'
import type { OpenedCode } from './code-step.ts'

/** An instance of a built-in: its code, and how it is closed. */
export interface CodeInstance {
  readonly code: OpenedCode
  close(): Promise<void>
}

/** A built-in whose code runs in this process. */
export class CodeModel implements LoadedModel {
  readonly #instances: readonly CodeInstance[]

  constructor(instances: readonly CodeInstance[]) {
    this.#instances = instances
  }

  async execute(batch: readonly EngineRequest[], o: BatchOptions): Promise<ExecutionTimes> {
    const beginNs = monotonicNs()
    const instance = this.#instances[o.instance]
    for (const { request, sink } of batch) {
      try {
        if (instance === undefined) throw bug(`instance ${o.instance} of a built-in`)
        if (o.signal.aborted) throw new ServeError('CANCELLED', 'no caller waits for the request')
        const outputs = await answer(instance.code, request, o.signal)
        sink.send({ index: 0, final: true, parameters: new Map(), outputs })
      } catch (error) {
        sink.fail(ServeError.from(error), 'maybe')
      }
    }
    return { computeInputNs: 0, computeInferNs: monotonicNs() - beginNs, computeOutputNs: 0 }
  }

  async close(): Promise<void> {
    await Promise.all(this.#instances.map((instance) => instance.close()))
  }
}

async function answer(
  code: OpenedCode,
  { inputs, requestedOutputs }: StepRequest,
  signal: CancelSignal,
): Promise<readonly NamedTensor[]> {
  const outputs = await code.run(new Map(inputs.map((tensor) => [tensor.name, tensor])), signal)
  if (requestedOutputs.length === 0) return outputs
  return requestedOutputs.map((name) => {
    const output = outputs.find((one) => one.name === name)
    if (output === undefined) throw bug(`a built-in has no output ${name}`)
    return output
  })
}
