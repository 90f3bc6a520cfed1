import type { FlagValues } from '@tutti/chassis'
import { isLoopback } from '@tutti/serving'
import { type OpenCudaMemory, SharedRegions } from '@tutti/shared-memory'
import type { SERVER_FLAGS } from './server-flags.ts'

/**
 * Opens the regions of shared memory that clients may register: by default only those on the machine of a server that is one
 * process.
 *
 * @param o.openCudaMemory - absent where memory of GPUs is not offered.
 * @param o.opened - closes them.
 * @returns undefined where clients may register none.
 */
export function openRegions(o: {
  readonly flags: FlagValues<typeof SERVER_FLAGS>
  readonly isOneProcess?: boolean
  readonly openCudaMemory?: OpenCudaMemory
  readonly opened: AsyncDisposableStack
}): SharedRegions | undefined {
  const { flags, isOneProcess = false } = o
  const addresses = [
    ...(flags['allow-http'] ? [flags['http-address']] : []),
    ...(flags['allow-grpc'] ? [flags['grpc-address']] : []),
  ]
  const isLocal = addresses.every((address) => address === 'localhost' || isLoopback(address))
  const isAllowed = flags['allow-client-shm'] ?? (isOneProcess && isLocal)
  if (!isAllowed) return undefined
  return o.opened.adopt(new SharedRegions(o.openCudaMemory), (regions) => regions.close())
}
