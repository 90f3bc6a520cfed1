import { execFile, execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { http2Load, type LoadRequest } from './http2-load.ts'

/** Runs a load and gives the requests per second. Throws if any request failed on the way. */
export interface LoadGenerator {
  readonly name: string
  run(load: LoadRequest): Promise<number>
  close(): void
}

const GRPC_HEADER_BYTES = 5

/** Puts gRPC's frame header before a message: no compression, length in four bytes. */
export function toGrpcFrame(message: Uint8Array): Buffer {
  const frame = Buffer.alloc(GRPC_HEADER_BYTES + message.byteLength)
  frame.writeUInt32BE(message.byteLength, 1)
  frame.set(message, GRPC_HEADER_BYTES)
  return frame
}

function hasH2load(): boolean {
  try {
    execFileSync('h2load', ['--version'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

/** h2load if it is installed, which takes little of the machine; else a client on node:http2, which takes more. */
export function openLoadGenerator(): LoadGenerator {
  if (!hasH2load()) return { name: 'node:http2', run: http2Load, close: () => {} }
  const directory = mkdtempSync(join(tmpdir(), 'tutti-bench-'))
  return {
    name: 'h2load',
    run: (load) => h2load(load, join(directory, 'body.bin')),
    close: () => rmSync(directory, { recursive: true }),
  }
}

async function h2load(load: LoadRequest, bodyFile: string): Promise<number> {
  writeFileSync(bodyFile, load.body)
  const { stdout } = await promisify(execFile)('h2load', [
    '--clients=1',
    `--max-concurrent-streams=${load.inFlight}`,
    `--requests=${load.requests}`,
    `--data=${bodyFile}`,
    '--header=content-type: application/grpc',
    '--header=te: trailers',
    `http://127.0.0.1:${load.port}${load.path}`,
  ])
  const rate = /finished in [^,]+, ([\d.]+) req\/s/.exec(stdout)?.[1]
  const succeeded = Number(/(\d+) succeeded/.exec(stdout)?.[1])
  if (rate === undefined || succeeded !== load.requests) {
    throw new Error(`h2load: want ${load.requests} requests succeeded, got:\n${stdout}`)
  }
  return Number(rate)
}
