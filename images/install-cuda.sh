#!/bin/sh
# install-cuda.sh PACKAGE...: installs CUDA's libraries from PyPI where the loader finds them, and ONNX Runtime with its provider for CUDA
# into /opt/python/onnxruntime. An image without Python stays without it.
set -eu
pip=/opt/python/bin/pip
site=$(echo /opt/python/lib/python3*/site-packages)
has_python=yes
target=
if [ ! -x $pip ]; then
  has_python=''
  apt-get update -q
  apt-get install -q -y --no-install-recommends python3 python3-venv
  python3 -m venv /tmp/pip
  pip=/tmp/pip/bin/pip
  site=/opt/python/lib/python3/site-packages
  target=--target=$site
fi
# Without what they ask for: the list is whole, and ONNX Runtime's own Python is not used. What PyTorch has brought in the same
# version stays as it is.
$pip install --no-cache-dir --no-compile --no-deps $target "$@"
runtime=/opt/python/onnxruntime
mkdir -p $runtime
mv "$site"/onnxruntime/capi/libonnxruntime.so.* $runtime/libonnxruntime.so.1
for provider in shared cuda; do
  mv "$site/onnxruntime/capi/libonnxruntime_providers_$provider.so" $runtime
done
rm -rf "$site/onnxruntime" "$site/bin"
find "$site/nvidia" -mindepth 2 -maxdepth 2 -name lib > /etc/ld.so.conf.d/tutti-cuda.conf
ldconfig
if [ -z "$has_python" ]; then
  # Headers and the like are for compilers.
  find "$site/nvidia" -type f ! -name '*.so*' -delete
  apt-get purge -q -y --auto-remove python3 python3-venv
  rm -rf /tmp/pip /var/lib/apt/lists/* /var/cache/apt/* /var/cache/debconf/*-old /var/lib/dpkg/*-old /var/log/*
fi
