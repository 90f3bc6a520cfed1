import { workerData } from 'node:worker_threads'
import { openMailbox, POSTED, type RunThreadData } from '../onnxruntime/thread-mailbox.ts'

/* A run thread that throws at its first call. */

const { memory }: RunThreadData = workerData
const { header } = openMailbox(memory)
Atomics.wait(header, POSTED, 0)
throw new Error('threw as ordered')
