export type {
  BearerResponse,
  EnvelopeHandler,
  EnvelopeSink,
  ReplicaAddress,
  StepTimes,
  TensorBearer,
} from './tensor-bearer.ts'
