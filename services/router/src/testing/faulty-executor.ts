import { appendFileSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ServeError } from '@tutti/errors'
import { type Executor, NO_TIMES } from '@tutti/tensor'
import { floats } from './requests.ts'

/** How a replica answers, on purpose. */
export type ReplicaFault = 'none' | 'fail' | 'hang' | 'die' | 'late' | 'twice'

/** Sets how the next executions of a model go, over all replicas that share the folder, and forgets those before. */
export function setFault(folder: string, model: string, fault: ReplicaFault, times: number): void {
  writeFileSync(join(folder, `${model}.fault`), `${fault} ${times}`)
  writeFileSync(join(folder, `${model}.executed`), '')
}

/** Counts the executions of a model since its fault was set. */
export function executionsOf(folder: string, model: string): number {
  return readFileSync(join(folder, `${model}.executed`)).byteLength
}

/** Makes a replica of a model that answers with a number of its own, unless its fault says otherwise. @param die - ends the replica. */
export function faultyExecutor(
  folder: string,
  model: string,
  die: (fail: (error: ServeError) => void) => void,
): Executor {
  return {
    execute: (_request, sink, { signal }) => {
      const [wanted = 'none', times] = readFileSync(join(folder, `${model}.fault`), 'utf8').split(
        ' ',
      )
      const fault = executionsOf(folder, model) < Number(times) ? wanted : 'none'
      appendFileSync(join(folder, `${model}.executed`), 'x')
      const fail = (error: ServeError): void => sink.fail(error, 'maybe')
      const answer = (): void => {
        const outputs = [floats('Y', [model === 'm' ? 1 : 2])]
        sink.send({ index: 0, final: true, outputs, parameters: new Map(), times: NO_TIMES })
      }
      if (fault === 'fail') return fail(new ServeError('ENGINE_FAILED', 'it broke'))
      if (fault === 'die') return die(fail)
      if (fault === 'hang' || fault === 'late') {
        const ended = fault === 'late' ? answer : () => fail(ServeError.from(signal.reason))
        return signal.addEventListener('abort', ended, { once: true })
      }
      answer()
      if (fault === 'twice') answer()
    },
  }
}
