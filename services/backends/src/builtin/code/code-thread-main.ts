import { type MessagePort, parentPort, workerData } from 'node:worker_threads'
import { bug } from '@tutti/errors'
import type { NamedTensor } from '@tutti/tensor'
import type { OpenedCode } from './code-step.ts'
import { openCode } from './code-table.ts'
import {
  type CodeReply,
  type CodeThreadData,
  handedOver,
  ownTensor,
  toSentError,
} from './thread-messages.ts'

/*
 * The thread of one instance of a built-in: opens the code, and then answers one call after the other.
 */

const port: MessagePort = parentPort ?? noPort()

function noPort(): never {
  throw bug('the module of a thread runs in none')
}

function reply(message: CodeReply): void {
  const memory = 'outputs' in message ? handedOver(message.outputs) : []
  port.postMessage(message, memory)
}

async function run(code: OpenedCode, inputs: readonly NamedTensor[]): Promise<void> {
  try {
    const outputs = await code.run(new Map(inputs.map((tensor) => [tensor.name, tensor])))
    // Small ones may be views of a pool of Node's, which cannot be handed over.
    reply({ outputs: outputs.map((one) => (isWhole(one) ? one : ownTensor(one))) })
  } catch (error) {
    reply({ error: toSentError(error) })
  }
}

const isWhole = ({ data }: NamedTensor): boolean => data.byteLength === data.buffer.byteLength

async function open(): Promise<void> {
  const { name, options, place }: CodeThreadData = workerData
  try {
    const code = await openCode(name, options, place)
    port.on('message', (inputs: readonly NamedTensor[]) => void run(code, inputs))
    reply({ outputs: [] })
  } catch (error) {
    reply({ error: toSentError(error) })
  }
}

await open()
