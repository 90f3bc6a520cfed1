import { randomUUID } from 'node:crypto'
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ServeError } from '@tutti/errors'
import { type Executor, NO_TIMES } from '@tutti/tensor'
import { floats, toFloats } from './requests.ts'

/** How a replica answers, on purpose. */
export type ReplicaFault = 'none' | 'fail' | 'hang' | 'die' | 'late' | 'twice'

/**
 * Sets how the next executions of a model go, over all replicas that share the folder, and forgets those before.
 *
 * @param after - executions before the fault. Default none.
 */
export function setFault(
  folder: string,
  model: string,
  fault: ReplicaFault,
  times: number,
  after = 0,
): void {
  writeFileSync(join(folder, `${model}.fault`), `${fault} ${times} ${after}`)
  writeFileSync(join(folder, `${model}.executed`), '')
}

/** Lists the first value of the input of each execution of a model since its fault was set. */
export function executedOf(folder: string, model: string): readonly number[] {
  return linesOf(folder, model).map((line) => Number(line.split(' ')[0]))
}

function linesOf(folder: string, model: string): readonly string[] {
  return readFileSync(join(folder, `${model}.executed`), 'utf8')
    .split('\n')
    .slice(0, -1)
}

/** Counts the executions of a model since its fault was set. */
export function executionsOf(folder: string, model: string): number {
  return executedOf(folder, model).length
}

/** Makes a replica of a model that answers with a number of its own, unless its fault says otherwise. @param die - ends the replica. */
export function faultyExecutor(
  folder: string,
  model: string,
  die: (fail: (error: ServeError) => void) => void,
): Executor {
  return {
    execute: ({ inputs }, sink, { signal }) => {
      const line = `${toFloats(inputs[0]?.data)[0]} ${randomUUID()}`
      appendFileSync(join(folder, `${model}.executed`), `${line}\n`)
      const fault = faultOf(folder, model, line)
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

/** Finds the fault of an execution by its place among those of all replicas, which may begin at the same time. */
function faultOf(folder: string, model: string, line: string): string {
  const text = readFileSync(join(folder, `${model}.fault`), 'utf8')
  const [wanted = 'none', times, after] = text.split(' ')
  const before = linesOf(folder, model).indexOf(line)
  return before >= Number(after) && before < Number(after) + Number(times) ? wanted : 'none'
}
