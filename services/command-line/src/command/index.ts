export {
  FORMAT_FLAG,
  KUBECTL_FORMAT_FLAG,
  RESULT_FORMAT_FLAG,
  withFlags,
} from './with-flags.ts'
