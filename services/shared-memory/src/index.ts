export type { OpenCudaMemory } from './cuda-region.ts'
export { PlacingSink } from './placing-sink.ts'
export {
  AT_ONCE_BYTES,
  type CudaRequest,
  type OutputPlace,
  type Region,
  type RegionKind,
  type SystemRequest,
  unknownRegion,
} from './region.ts'
export { HANDLE_BYTES, MAX_REGIONS, SharedRegions } from './shared-regions.ts'
