#!/usr/bin/env bash
# Makes a virtual environment for every peer: install.sh FOLDER [NAME ...]
#
# About 12 GB in all, most of it torch, 7 for fairseq2 alone; where pip finds a torch built for the CPU alone, it is taken.
# An environment that cannot be made is reported, and the benchmark goes on without it.
set -uo pipefail

folder=${1:?usage: install.sh FOLDER [NAME ...]}
shift
declare -A packages=(
    [curator]="bespokelabs-curator==0.1.31 orjson"
    [daft]="daft==0.7.26"
    [datachain]="datachain==0.62.0 orjson"
    [datadesigner]="data-designer==0.9.7 orjson"
    [datajuicer]="torch==2.13.0 py-data-juicer==1.6.1 aiohttp ray==2.60.0 scipy"  # three undeclared
    [datasets]="datasets==5.2.0"
    [datatrove]="datatrove==0.10.1 orjson spacy ftfy nltk regex tldextract tokenizers xxhash==3.5.0"  # xxhash 4 takes no str
    [energon]="torch==2.13.0 megatron-energon==7.4.1 orjson"
    [distilabel]="distilabel[openai]==1.5.3 orjson requests"  # requests is undeclared
    [fairseq2]="fairseq2n==0.8.1 fairseq2==0.8.1 orjson"  # with torch for CUDA, 7 GB
    [grain]="grain==0.2.18 orjson"
    # Its data module also needs its extra `rag`. llama-index-core has the data of NLTK.
    [lazyllm]="lazyllm==1.4.0 regex tiktoken pyahocorasick bpe-openai datasketch jieba llama-index-core nltk transformers"
    [metaxy]="metaxy[delta]==0.1.11 orjson"
    [mosaic]="torch==2.13.0 mosaicml-streaming==0.13.0 orjson"
    [openai]="openai[aiohttp]==3.54.0 orjson"
    [polars]="polars==2.1.0"
    [ray]="ray[data]==2.60.0 orjson"
    [torchdata]="torch==2.13.0 torchdata==0.11.0 orjson"
    [webdataset]="webdataset==1.0.2 orjson"
)
mkdir -p "$folder"
for name in "${@:-${!packages[@]}}"; do
    [[ -x $folder/$name/bin/python ]] && continue
    echo "== $name: ${packages[$name]}"
    python3 -m venv "$folder/$name" &&
        # shellcheck disable=SC2086 # several packages
        nice -n 15 "$folder/$name/bin/pip" install --quiet ${packages[$name]} ||
        { echo "$name cannot be installed" && rm -rf "${folder:?}/$name"; }
done
